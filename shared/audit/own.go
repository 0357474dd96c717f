package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/countersign-run/countersign/shared/store"
)

// Own returns the id of a user's own chain, which records what happened outside of any run. It is used in place of a
// run's id.
func Own(uid string) string {
	sum := sha256.Sum256([]byte("own chain\x00" + uid))
	return "user-" + hex.EncodeToString(sum[:16])
}

// HeadPath returns the path at which the end of a chain is stored that has no run's document: of a user's own chain,
// and of a run that was deleted.
func HeadPath(chain string) string { return "audit_heads/" + chain }

// Append reads the end of the user's own chain and returns the writes that append e to it. They belong in the same
// commit as the change that e records. If that commit fails with [store.ErrConflict], the chain may have moved: call
// Append again.
func Append(ctx context.Context, st store.Store, e Entry) ([]store.Write, error) {
	e.RunID = Own(e.UID)
	path := HeadPath(e.RunID)
	docs, err := st.Get(ctx, path)
	if err != nil {
		return nil, err
	}
	var head Head
	if docs[0].Exists() {
		if err := json.Unmarshal(docs[0].Data, &head); err != nil {
			return nil, fmt.Errorf("audit: %s cannot be read: %w", path, err)
		}
	}
	e, head = Seal(head, e)
	entry, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	end, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	moved := store.Create(path, map[string]any{"at": e.At}, end)
	if docs[0].Exists() {
		moved = store.Update(path, docs[0].Version, moved.Doc.Fields, end)
	}
	return []store.Write{store.Create(Path(e.RunID, e.Seq), e.Fields(), entry), moved}, nil
}
