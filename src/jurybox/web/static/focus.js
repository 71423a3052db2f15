// A browser applies autofocus late, and letters that are typed before it are lost.
document.querySelector("[autofocus]")?.focus();
