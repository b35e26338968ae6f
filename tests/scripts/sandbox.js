// Put a drawing into a frame of no origin, in which scripts run.
body => {
  const frame = document.createElement('iframe');
  Object.assign(frame, {sandbox: 'allow-scripts', srcdoc: body, width: 800, height: 800});
  document.body.prepend(frame);
}
