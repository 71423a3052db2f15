// Browsers apply autofocus late, and letters typed before that are lost.
document.querySelector("[autofocus]")?.focus();
