// Package subprocess is what programs have in common that this one starts: a process group of their own, so that they
// are ended with all that they have started, and an environment in which nothing is that they were not given.
package subprocess

import "os"

// Environ returns those of this process's variables that have one of the names, as KEY=value. All others may be
// secrets.
func Environ(names ...string) (env []string) {
	for _, name := range names {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
