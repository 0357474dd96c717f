package gemini

import (
	"bytes"
	"io"
	"log"
	"sync"

	"google.golang.org/genai"
)

// making is held while genai makes a client.
var making sync.Mutex

// quietly makes a client without what genai writes to the program's log about variables of the environment. This
// package gives genai all that it needs, so a line such as "Using GOOGLE_API_KEY." is not true. Lines that others write
// meanwhile are passed on.
func quietly(makes func() (*genai.Client, error)) (*genai.Client, error) {
	making.Lock()
	defer making.Unlock()
	was := log.Writer()
	log.SetOutput(withoutGenai{was})
	defer log.SetOutput(was)
	return makes()
}

// withoutGenai is the program's log without genai's comments on the environment.
type withoutGenai struct{ io.Writer }

func (w withoutGenai) Write(line []byte) (int, error) {
	for _, beginning := range []string{"Warning: Both GOOGLE_", "Warning: The user provided ",
		"Warning: The project/location from the environment"} {
		if bytes.Contains(line, []byte(beginning)) {
			return len(line), nil
		}
	}
	return w.Writer.Write(line)
}
