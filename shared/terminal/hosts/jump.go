package hosts

import (
	"context"
	"slices"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/terminal"
)

// checkJump checks that a new host can be reached through the user's host with the ID. Loops cannot arise: a host's
// jump host exists before it, and never changes.
func checkJump(ctx context.Context, st store.Store, uid, id string) error {
	if id == "" {
		return nil
	}
	via, err := terminal.ReadJumps(ctx, st, uid, id)
	if fault.Is(err, fault.Auth, fault.CodeNotFound) || len(via) > terminal.MaxJumps {
		return fault.Invalid("jump", "you have no host with this ID, or its route has more than %d hosts",
			terminal.MaxJumps)
	}
	return err
}

// checkUnused returns PolicyError host_in_use if another host of the user's is reached through this one.
func (s *state) checkUnused(ctx context.Context, id string) error {
	all, err := terminal.Hosts(ctx, s.hosts.cfg.Store, s.list)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(h terminal.Host) bool { return h.Jump == id })
	if i < 0 {
		return nil
	}
	return fault.New(fault.Policy, fault.CodeHostInUse, "%s is reached through this host. Delete %s first.",
		all[i].Name, all[i].Name)
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
