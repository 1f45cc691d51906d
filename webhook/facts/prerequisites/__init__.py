"""What the API server looks up when a pod is created, so that a controller makes no pod where it is missing."""
