"""The versioned stages of this lab, one short module each; ``skillpress/pipeline`` runs them."""
