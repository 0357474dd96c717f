package firestore

// Trust makes the store treat the emulator like the service, which sends every change and is not polled.
func (s *Store) Trust() { s.emulated = false }
