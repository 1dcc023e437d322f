// Saves the private key of a signing key as a file. It is made here, so that the private key is in no address.
for (const button of document.querySelectorAll('[data-pem]')) {
  button.addEventListener('click', () => {
    const pem = atob(document.querySelector(`[data-line="${button.dataset.pem}"]`).textContent);
    const href = URL.createObjectURL(new Blob([pem], { type: 'application/x-pem-file' }));
    const link = Object.assign(document.createElement('a'), { href, download: button.dataset.name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(href), 10000); // the browser has read it by then
  });
}
