"""What environments that speak English have in common: rule tables, words, the usual prompt."""
