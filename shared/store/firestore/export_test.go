package firestore

// Trust has the store take the emulator for the service, which tells of every change and is not asked.
func (s *Store) Trust() { s.emulated = false }
