"""`dovetail doctor`: is everything there that Dovetail needs?"""
