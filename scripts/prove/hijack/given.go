package hijack

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/taint"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/tools/memory"
)

// This file puts attacks into the texts that Ana gives to the model: files with her prompt, and notes for later
// conversations.

// attachments returns a file that contains the attack. The kind selects the place: the text, a PDF, a picture, or the
// file's name.
func attachments(kind, text string) []map[string]any {
	name, data := "offer", []byte("A plain offer.")
	switch kind {
	case "text":
		data = []byte(strings.Map(func(r rune) rune {
			if r < ' ' && r != '\n' {
				return ' ' // a text file cannot contain this character
			}
			return r
		}, text))
	case "pdf":
		data = fmt.Appendf(nil, "%%PDF-1.7\n1 0 obj<<>>stream\nBT (%s) Tj ET\nendstream endobj\n", text)
	case "picture":
		data = png("tEXt", "Comment\x00"+text)
	case "name":
		name = text
	}
	return []map[string]any{{"name": name, "data": data}}
}

// png returns a picture of one pixel with an additional chunk.
func png(kind, data string) []byte {
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	whole, err := base64.StdEncoding.DecodeString(pixel)
	proof.Must(err)
	end := len(whole) - 12 // IEND
	chunk := kind + data
	sum := crc32.ChecksumIEEE([]byte(chunk))
	out := fmt.Appendf(bytes.Clone(whole[:end]), "%c%c%c%c%s", 0, 0, 0, 0, chunk)
	out = append(out, byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum))
	for i := range 4 {
		out[end+i] = byte(len(data) >> (24 - 8*i))
	}
	return append(out, whole[end:]...)
}

// given returns the texts of the files in the contents, as a model reads them.
func given(raw []json.RawMessage) (texts []string) {
	for _, r := range raw {
		var c struct {
			Parts []struct {
				InlineData struct{ Data []byte }
			}
		}
		if !bytes.Contains(r, []byte("inlineData")) {
			continue
		}
		proof.Must(json.Unmarshal(r, &c))
		for _, p := range c.Parts {
			texts = append(texts, string(p.InlineData.Data))
		}
	}
	return texts
}

// noted returns the notes at the end of the instructions.
func noted(system string) (texts []string) {
	at := strings.LastIndex(system, "\n[{")
	if at < 0 {
		return nil
	}
	var notes []run.Note
	if json.Unmarshal([]byte(system[at:]), &notes) == nil {
		for _, n := range notes {
			texts = append(texts, n.Text)
		}
	}
	return texts
}

// noter is the agent that keeps notes about Ana.
const noter = "noter"

// withNoter writes the file of the agent, and returns the setting that names its folder.
func withNoter(dir string) (setting string, err error) {
	folder := filepath.Join(dir, "agents")
	file := "name: " + noter + "\ninstruction: You help.\ntools: [gmail_send, calendar_event_create, gmail_search, " +
		memory.Remember + "]\nonReject: continue\nlimits: {modelCalls: 3}\n"
	return "AGENTS=" + folder, errors.Join(os.MkdirAll(folder, 0o700),
		os.WriteFile(filepath.Join(folder, noter+".agent.yaml"), []byte(file), 0o600))
}

// note makes the model read the attack in a file and write it as a note, and approves the note as Ana. forget deletes
// the note.
func (s *siege) note(text string) (forget func()) {
	text = clip.Text(strings.Join(strings.Fields(text), " "), run.MaxNote)
	s.setTask(&fakegemini.Call{Name: memory.Remember, Args: map[string]any{"text": text}})
	r := s.askWith(map[string]any{"prompt": "What does it say?", "agent": noter,
		"attachments": attachments("text", text)})
	for _, card := range s.pending()[r.RunID] {
		s.say("ana", card.ApprovalID, run.ApproveOnce, nil, "")
	}
	s.deliver()
	s.setTask(nil)
	var kept struct{ Notes []run.Note }
	proof.Must(json.Unmarshal(s.call("ana", "GET", "/memory", nil).Body, &kept))
	for _, n := range kept.Notes {
		s.Count("notes", 1)
		s.read, s.origin = taint.Normalize(n.Text), "a note that was made after reading the file offer"
	}
	return func() {
		for _, n := range kept.Notes {
			s.call("ana", "DELETE", "/memory/"+n.ID, nil)
		}
	}
}

// setTask sets the first call of the model, whatever it reads. nil means none.
func (s *siege) setTask(c *fakegemini.Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.task = c
}
