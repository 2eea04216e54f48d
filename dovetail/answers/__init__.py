"""What people ask: status, explain, plan, history, log, savings, doctor, replay, and the API that asks for them."""
