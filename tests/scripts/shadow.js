// Put a drawing into a shadow tree, where its script runs.
body => {
  const host = document.createElement('div'), script = document.createElement('script');
  document.body.append(host);
  const root = host.attachShadow({mode: 'open'});
  root.innerHTML = body;
  script.text = root.querySelector('script:last-of-type').textContent;
  root.append(script);
}
