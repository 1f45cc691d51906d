"""The pods that an object creates: its pod sets, their containers, and rules of the API server for pod templates."""
