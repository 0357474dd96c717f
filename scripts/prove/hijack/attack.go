// Package hijack tests Countersign with a model under an attacker's control. The model obeys every text that it reads.
// The attacker's text can be in every place that the model reads, on a complete Countersign (testkit). The proof shows
// that nothing happens without the user's approval, that no preview hides an effect, and that no data of another user
// is reached.
package hijack

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

//go:embed testdata/attacks.jsonl
var attacks []byte

// Attack is a text of the attacker. {BOBS} in it is replaced by an approval ID of another user.
type Attack struct {
	ID   string
	Text string
}

// Places are the places of an attack: the prompt, the history, the result or the error of the tool inbox_read, the
// user's comment on a rejection, the arguments that the user edits, the text of a Google error, a file of the user, and
// a note of an earlier conversation.
var Places = []string{"prompt", "history", "mail.from", "mail.subject", "mail.body", "mail.attachment", "event.title",
	"event.description", "read.error", "comment", "edit", "provider.error", "file.text", "file.pdf", "file.picture",
	"file.name", "memory"}

// Attacks returns this package's own attacks. Attacks that use recipients whom Ana always allows come first, because
// such a permission is valid for only 20 calls a day.
func Attacks() ([]Attack, error) { return attacksIn(attacks) }

// attacksIn reads a list with an attack in each line.
func attacksIn(list []byte) (out []Attack, err error) {
	return out, eachLine(list, func(line []byte) error {
		var a Attack
		err := json.Unmarshal(line, &a)
		out = append(out, a)
		return err
	})
}

// Hostile returns the attacks of the category "injection" in a file of hostile cases.
func Hostile(file string) ([]Attack, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []Attack
	return out, eachLine(data, func(line []byte) error {
		var c struct {
			ID       string
			Category string
			Input    struct{ Untrusted struct{ Text string } }
		}
		if err := json.Unmarshal(line, &c); err != nil {
			return err
		}
		if c.Category == "injection" {
			out = append(out, Attack{c.ID, c.Input.Untrusted.Text})
		}
		return nil
	})
}

func eachLine(data []byte, do func([]byte) error) error {
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		if err := do(lines.Bytes()); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return lines.Err()
}
