"""The account: its password, logins, tokens and share links, and the throttling of guesses."""
