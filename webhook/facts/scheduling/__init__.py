"""Objects of scheduling.k8s.io that pods name: PriorityClasses and PodGroups."""
