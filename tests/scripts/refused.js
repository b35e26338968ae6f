// The field and the sentence with which settings are refused, null where they are taken.
async ({ settings, shape }) => {
  const change = await import('./frontend/live/change.js');
  try {
    change.checked(settings, shape, 9);
    return null;
  } catch (error) {
    return { field: error.field, said: error.message };
  }
}
