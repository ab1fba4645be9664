#!/bin/sh
# Stands for workerd in the tests: does what its configuration says, which is the second argument.
. "$2"
