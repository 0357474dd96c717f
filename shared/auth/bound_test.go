package auth

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"
	"time"
)

// TestMemoryIsBounded: what comes again and again is kept among any number of others, which are not.
func TestMemoryIsBounded(t *testing.T) {
	var m memory
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	token := func(n uint64) [sha256.Size]byte { return sha256.Sum256(binary.BigEndian.AppendUint64(nil, n)) }
	m.remember(token(0), verified{keyID: "kept", until: now.Add(seenFor)})
	for n := uint64(1); n < 10*maxSeen; n++ {
		m.remember(token(n), verified{until: now.Add(seenFor)})
		if v, ok := m.recall(token(0), now); !ok || v.keyID != "kept" {
			t.Fatalf("after %d others it is %+v", n, v)
		}
		if len(m.newer) > maxSeen || len(m.older) > maxSeen {
			t.Fatalf("%d and %d are remembered", len(m.newer), len(m.older))
		}
	}
	if _, ok := m.recall(token(1), now); ok {
		t.Error("the first of many others is remembered")
	}
	if _, ok := m.recall(token(0), now.Add(seenFor)); ok {
		t.Error("what was kept is remembered for longer than it may be")
	}
}
