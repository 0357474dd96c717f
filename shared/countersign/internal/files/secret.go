package files

import (
	"path"
	"runtime"
	"strings"
	"unicode"
)

// secrets are the names, in lower-case letters, of files that hold secrets and of folders with such files.
var secrets = strings.Fields(`
	.env* .git .git-credentials .netrc _netrc .npmrc .pypirc .pgpass .my.cnf .htpasswd .vault-token
	.ssh .aws .azure .gnupg .kube .docker .gcloud .gemini.yaml
	*.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.tfstate *.tfstate.backup
	id_rsa* id_dsa* id_ecdsa* id_ed25519* application_default_credentials.json service-account*.json
	countersign.db* chat-key token-key.json local-google-key
`)

// secret reports whether a part of a path suggests a secret. It ignores the differences between names that some file
// systems treat as equal: capitals, zero-width characters, trailing dots and blanks, and streams after a colon.
func secret(part string) bool {
	part, _, _ = strings.Cut(part, ":")
	part = strings.TrimRight(strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(r)) // both conversions, for letters such as ſ
	}, part), " .")
	for _, pattern := range secrets {
		if ok, _ := path.Match(pattern, part); ok {
			return true
		}
	}
	return runtime.GOOS == "windows" && shortened(part)
}

// shortened reports whether a name may be the short form of another one (ENV~1).
func shortened(part string) bool {
	_, n, ok := strings.Cut(part, "~")
	return ok && n != "" && unicode.IsDigit(rune(n[0]))
}
