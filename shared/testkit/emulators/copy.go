package emulators

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// copyPage is the number of documents in one commit of CopyFirestore.
const copyPage = 400

// CopyFirestore copies all documents of a project's database to another database of the project, as a restored backup
// has them. It replaces the documents with the same names.
func CopyFirestore(ctx context.Context, addr, project, from, to string) error {
	source := "projects/" + project + "/databases/" + from
	target := "projects/" + project + "/databases/" + to
	// a query of all collections; the emulator answers with the state of one moment
	body, err := send(ctx, http.MethodPost, addr, source+"/documents:runQuery", `{"structuredQuery":{"from":[{"allDescendants":true}]}}`)
	if err != nil {
		return err
	}
	var found []struct {
		Document *struct {
			Name   string          `json:"name"`
			Fields json.RawMessage `json:"fields,omitempty"`
		} `json:"document"`
	}
	if err := json.Unmarshal(body, &found); err != nil {
		return err
	}
	var writes []any
	for _, f := range found {
		if f.Document == nil {
			continue
		}
		f.Document.Name = strings.Replace(f.Document.Name, source, target, 1)
		writes = append(writes, map[string]any{"update": f.Document})
	}
	for page := range slices.Chunk(writes, copyPage) {
		commit, err := json.Marshal(map[string]any{"writes": page})
		if err != nil {
			return err
		}
		if _, err := send(ctx, http.MethodPost, addr, target+"/documents:commit", string(commit)); err != nil {
			return err
		}
	}
	return nil
}
