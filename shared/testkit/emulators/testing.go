package emulators

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/child"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// Firestore returns the host:port of a Firestore emulator: the one that FIRESTORE_EMULATOR_HOST names, or one that is
// started for this test binary. Its tests share it, and separate their data by project ID. If the emulator is missing
// or does not answer, the test is skipped, or fails if REQUIRE_ALL is 1.
func Firestore(t testing.TB) string {
	t.Helper()
	return sharedFirestore.addr(t)
}

// PubSub is like [Firestore], for the Pub/Sub emulator and PUBSUB_EMULATOR_HOST.
func PubSub(t testing.TB) string {
	t.Helper()
	return sharedPubSub.addr(t)
}

var sharedFirestore, sharedPubSub = shared{part: firestore}, shared{part: pubsub}

// shared is an emulator that the tests of one binary share.
type shared struct {
	part
	mu       sync.Mutex
	running  *Emulator
	failed   error // starting takes long, so it is tried once
	users    int
	printout child.Tail
}

func (s *shared) addr(t testing.TB) string {
	t.Helper()
	realpart.Emulators.Take(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil && s.failed == nil {
		s.running, s.failed = s.start(t.Context(), &s.printout)
		if s.failed == nil {
			s.failed = s.warm(t.Context(), s.running.Addr)
		}
	}
	switch {
	case s.failed == nil:
	case errors.Is(s.failed, ErrAbsent):
		realpart.Emulators.Absent(t, s.failed.Error())
	default:
		realpart.Emulators.Broken(t, fmt.Sprintf("%v\n%s", s.failed, s.printout.String()))
	}
	s.users++
	t.Cleanup(func() { s.release(t) })
	return s.running.Addr
}

// End stops the emulators that the tests of this binary shared. TestMain calls it after all tests.
func End() error { return errors.Join(sharedFirestore.end(), sharedPubSub.end()) }

func (s *shared) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return nil
	}
	defer func() { s.running = nil }()
	return s.running.Stop()
}

func (s *shared) release(t testing.TB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	if child.CanDieWithParent || s.users > 0 {
		return
	}
	if err := s.running.Stop(); err != nil {
		t.Error(err)
	}
	s.running = nil
}
