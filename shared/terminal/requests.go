package terminal

import "github.com/countersign-run/countersign/shared/terminal/shell"

// NewHost is a request to add a host.
type NewHost struct {
	Name     string    `json:"name"`
	Address  string    `json:"host"`
	Port     *int      `json:"port"` // nil: 22
	Username string    `json:"username"`
	Auth     NewAuth   `json:"auth"`
	HostKeys []HostKey `json:"hostKeys"`
	// lines of a known_hosts file; those that match the host add keys, certificate authorities and revoked keys
	KnownHosts *string  `json:"knownHosts"`
	Jump       *string  `json:"jump"`    // the ID of a host of the same user to connect through; nil: none
	AutoRun    *AutoRun `json:"autoRun"` // nil: none
	ReadPaths  []string `json:"readPaths"`
}

// NewAuth is the login of a new host.
type NewAuth struct {
	Kind       AuthKind `json:"kind"`
	PrivateKey *string  `json:"privateKey"` // for AuthPrivateKey: PEM, as ssh-keygen writes it
	Passphrase *string  `json:"passphrase"` // for an encrypted private key; it is used once, and not stored
	Password   *string  `json:"password"`   // for AuthPassword
}

// HostEdit is a request to change the editable fields of a host; a nil field stays as it is. The other fields are
// secrets, or values that the user has confirmed. To change those, the user deletes the host and adds it again.
type HostEdit struct {
	Name      *string   `json:"name"`
	AutoRun   *AutoRun  `json:"autoRun"`
	ReadPaths *[]string `json:"readPaths"`
}

// NewTerminal is a request to open a terminal.
type NewTerminal struct {
	HostID string  `json:"hostId"`
	Cols   int     `json:"cols"`
	Rows   int     `json:"rows"`
	Cwd    *string `json:"cwd"` // nil: the home directory
}

// ScanRequest asks for a host's keys.
type ScanRequest struct {
	Address string  `json:"host"`
	Port    *int    `json:"port"` // nil: 22
	Jump    *string `json:"jump"` // the ID of a host of the same user to connect through; nil: none
}

// Facts are the facts that a host reports when it is checked.
type Facts struct {
	OS     string          `json:"os"`
	Shells []shell.Grammar `json:"shells"` // the available shells; the first one runs commands
	PTY    bool            `json:"pty"`    // a command keeps its terminal when the connection is lost
	Home   string          `json:"home"`   // empty: no writable home directory
}
