//go:build race

package shell_test

const slow = 20
