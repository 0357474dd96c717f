package gemini

import (
	"bytes"
	"io"
	"log"
	"sync"

	"google.golang.org/genai"
)

// making is locked while genai makes a client.
var making sync.Mutex

// quietly makes a client without genai's log lines about environment variables. This package passes all settings to
// genai, so a line such as "Using GOOGLE_API_KEY." would be wrong. Log lines from other code are passed on.
func quietly(makes func() (*genai.Client, error)) (*genai.Client, error) {
	making.Lock()
	defer making.Unlock()
	was := log.Writer()
	log.SetOutput(withoutGenai{was})
	defer log.SetOutput(was)
	return makes()
}

// withoutGenai writes to the program's log and drops genai's lines about the environment.
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
