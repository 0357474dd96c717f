//go:build !race

package shell_test

// slow is by how much the tests are slower than the program.
const slow = 1
