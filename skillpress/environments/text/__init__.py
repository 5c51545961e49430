"""Parts shared by environments that speak English: rule tables, words, and the usual prompt."""
