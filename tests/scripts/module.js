// Whether a drawing's module has what anywidget calls.
async (address) => typeof (await import(address)).default.render
