// Package subprocess prepares the programs that this process starts. Each program gets a process group of its own, so
// that it is killed together with its child processes, and an environment with only the listed variables.
package subprocess

import "os"

// Environ returns this process's variables with the given names, as KEY=value. All other variables are left out,
// because they may contain secrets.
func Environ(names ...string) (env []string) {
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
