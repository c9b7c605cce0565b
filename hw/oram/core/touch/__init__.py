"""When touches happen: gates, scoreboard, credits."""
