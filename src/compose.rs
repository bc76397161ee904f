//! Compose files and `.env` files, text to text.
