package config

import (
	"fmt"
	"os"
	"strings"
)

// An Assignment is one line of a file of environment variables.
type Assignment struct {
	Line        int // from 1
	Name, Value string
}

// ReadAssignments reads a file of environment variables. Its lines are NAME=value, with or without quotation marks
// around the value, or comments that begin with #. The error names the file and the line, and does not repeat a value.
func ReadAssignments(file string) (all []Assignment, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(b), "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "export "))
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("%s:%d: expected NAME=value", file, i+1)
		}
		value = strings.TrimSpace(value)
		if n := len(value); n > 1 && value[0] == value[n-1] && (value[0] == '"' || value[0] == '\'') {
			value = value[1 : n-1]
		}
		all = append(all, Assignment{i + 1, strings.TrimSpace(name), value})
	}
	return all, nil
}
