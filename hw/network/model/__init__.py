"""The analytic model of the network kernel: when each step begins and ends, and which resource bounds it."""
