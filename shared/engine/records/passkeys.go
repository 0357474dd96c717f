package records

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/store/document"
)

// exportPasskeys passes the user's passkeys. The hash of a one-time code stays.
func (r *Records) exportPasskeys(ctx context.Context, uid string, each func(Item) error) error {
	var set passkey.Set
	if _, err := document.Get(ctx, r.Store, document.PasskeysPath(uid), &set); err != nil {
		return storeError(err)
	}
	for _, c := range set.Passkeys {
		if err := each(Item{Kind: ItemPasskey, Data: c}); err != nil {
			return err
		}
	}
	return nil
}
