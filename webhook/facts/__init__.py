"""What is true of an object and its surroundings, offered to policies under CEL names: facts, never verdicts.

functions   the names, their types, and the one function that computes them
devices     which resource and device class names mean which devices
gpu         devices that containers request, per container, pod set and object
dra         device claims resolved to what they ask for
trainer     a TrainJob merged with its runtime, and how many processes will start

Every fact is plain JSON. A fact that needs an object the view of the cluster does not have says so in `missing`; it
never guesses. No module here denies anything.
"""
