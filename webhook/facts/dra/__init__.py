"""Dynamic resource allocation: claims, classes, slices, selectors and driver configurations of resource.k8s.io."""
