// Columns of tables get room for their words on a phone; the longer the text, the wider.
document$.subscribe(() => {
  for (const table of document.querySelectorAll('article table'))
    for (const row of table.tBodies[0].rows)
      for (const cell of row.cells) {
        const text = cell.textContent;
        const word = Math.max(...text.split(/[\s,]+/).map((each) => each.length));
        const room = Math.max(Math.min(0.42 * word + 1.2, 9), text.length > 80 ? 11 : text.length > 30 ? 7 : 0);
        cell.style.setProperty('--room', `${room}rem`);
      }
});

// A field above the tables of keys: rows that do not hold all of its words are hidden.
document$.subscribe(() => {
  const tables = [...document.querySelectorAll('article table')].filter(
    (table) => table.querySelector('th')?.textContent.trim() === 'key');
  for (const table of tables) table.dataset.keys = '';
  if (!tables.some((table) => table.rows.length > 12)) return;
  const field = document.createElement('input');
  Object.assign(field, { type: 'search', className: 'filter', placeholder: 'Filter keys', ariaLabel: 'Filter keys' });
  field.addEventListener('input', () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const table of tables)
      for (const row of table.tBodies[0].rows)
        row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
  });
  (tables[0].closest('.md-typeset__scrollwrap') ?? tables[0]).before(field);
});
