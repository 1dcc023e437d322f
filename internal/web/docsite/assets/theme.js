// Before the page is painted: the colours that were chosen here before.
(() => {
  try {
    const theme = localStorage.getItem('docs-theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch { /* the browser keeps nothing */ }
})();
