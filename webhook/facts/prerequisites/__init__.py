"""The objects that the API server looks up when a pod is created; a controller creates no pod if one is missing."""
