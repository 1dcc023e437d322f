// What the embed page has beside the player of the watch page: settings in a menu on the picture, for there is no room
// below it.
'use strict';
(() => {
  const menu = document.getElementById('menu');
  const summary = menu.querySelector('summary');

  document.addEventListener('pointerdown', (e) => {
    if (!menu.contains(e.target)) menu.open = false;
  });
  menu.addEventListener('keydown', (e) => {
    if (e.key !== 'Escape' || !menu.open) return;
    menu.open = false;
    summary.focus();
  });
})();
