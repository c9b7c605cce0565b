"""Static timing: how long each path between registers takes, estimated before placement."""
