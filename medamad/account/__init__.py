"""The one account: its password, its logins and what slows a guesser down."""
