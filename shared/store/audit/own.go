package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// UserChain returns the ID of a user's own chain, which records events outside of any run. The ID takes the place of a
// run's ID.
func UserChain(uid string) string {
	sum := sha256.Sum256([]byte("own chain\x00" + uid))
	return "user-" + hex.EncodeToString(sum[:16])
}

// Append reads the end of the user's own chain and returns the writes that append e to it. They belong in the same
// commit as the change that e records. If that commit fails with [store.ErrConflict], the chain may have moved: call
// Append again.
func Append(ctx context.Context, st store.Store, e Entry) ([]store.Write, error) {
	e.RunID = UserChain(e.UID)
	path := document.AuditHeadPath(e.RunID)
	var head Head
	doc, err := document.Get(ctx, st, path, &head)
	if err != nil {
		return nil, err
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
	moved := store.Create(path, document.AuditHeadFields(e.At, time.Time{}), end)
	if doc.Exists() {
		moved = store.Update(path, doc.Version, moved.Doc.Fields, end)
	}
	return []store.Write{store.Create(document.AuditPath(e.RunID, e.Seq), e.Fields(), entry), moved}, nil
}
