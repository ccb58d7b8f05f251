// For this process it is a minute later.
const now = Date.now.bind(Date);
Date.now = () => now() + 60_000;
