"""How answers are shown: as tables that fit the screen, as documents for scripts, as Markdown. Loads no SDK."""
