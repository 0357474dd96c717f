package model

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/store/attachment"
)

// placeholder begins the URI of a file of an answer that is not stored yet. The file's index follows.
const placeholder = "answer:"

// TakeFiles takes the files out of an answer, because their bytes do not belong into the run's document. A placeholder
// is in the place of each. Parts keep all other fields, such as signatures. Files of thoughts are left out, because
// they are drafts, and so are references to stored files, which only this server makes. A file of a type that Gemini
// does not read stays as it is. The content can be without parts afterwards.
func TakeFiles(content json.RawMessage) (json.RawMessage, []attachment.File, error) {
	if !bytes.Contains(content, []byte("inlineData")) && !bytes.Contains(content, []byte("fileData")) {
		return content, nil, nil
	}
	c, err := decode(content)
	if err != nil {
		return nil, nil, err
	}
	var files []attachment.File
	kept := []any{}
	for i, p := range c.parts {
		var f attachment.File
		ok := p.InlineData != nil
		if ok && !p.Thought {
			f, ok = decodeFile(p.InlineData.Data, len(files)+1)
		}
		switch {
		case p.InlineData != nil && p.Thought, p.FileData != nil && isOurs(p.FileData.URI):
		case ok:
			uri := fmt.Sprint(placeholder, len(files))
			kept = append(kept, withData(c.Parts[i], "fileData", FileData{uri, f.Type}))
			files = append(files, f)
		default:
			kept = append(kept, c.Parts[i])
		}
	}
	return encodeContent(Role(c.Role), kept), files, nil
}

// isOurs reports whether only this server makes such references.
func isOurs(uri string) bool {
	return strings.HasPrefix(uri, attachment.Scheme) || strings.HasPrefix(uri, placeholder)
}

// decodeFile decodes the data of a file in an answer. number makes its name.
func decodeFile(data string, number int) (attachment.File, bool) {
	b, err := base64.RawStdEncoding.DecodeString(base64Form.Replace(data))
	if err != nil {
		return attachment.File{}, false
	}
	return attachment.Generated(fmt.Sprint("answer-", number), b)
}

// base64Form maps the two alphabets that the service may use to one.
var base64Form = strings.NewReplacer("-", "+", "_", "/", "=", "")

// withData returns the part with the named data in place of its file. All other fields keep their values.
func withData(part json.RawMessage, name string, data any) json.RawMessage {
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(part, &fields) // the caller has decoded the part
	delete(fields, "inlineData")
	delete(fields, "fileData")
	fields[name] = encode(data)
	return encode(fields)
}

// lostFile is in the place of a file that was not stored.
const lostFile = "[A picture or another file of this answer was not kept.]"

// BindFiles replaces the placeholders in an answer by the references of the stored files. refs has the reference of
// each file by its index; a file without a reference was not stored.
func BindFiles(content json.RawMessage, refs map[int]attachment.Ref) (json.RawMessage, error) {
	c, err := decode(content)
	if err != nil {
		return nil, err
	}
	for i, p := range c.parts {
		var n int
		if p.FileData == nil || !strings.HasPrefix(p.FileData.URI, placeholder) {
			continue
		}
		if _, err := fmt.Sscanf(p.FileData.URI, placeholder+"%d", &n); err != nil {
			return nil, unreadable(err)
		}
		if ref, ok := refs[n]; ok {
			c.Parts[i] = withData(c.Parts[i], "fileData", FileData{ref.String(), p.FileData.Type})
		} else {
			c.Parts[i] = encode(map[string]string{"text": lostFile})
		}
	}
	parts := make([]any, len(c.Parts))
	for i, p := range c.Parts {
		parts[i] = p
	}
	return encodeContent(Role(c.Role), parts), nil
}
