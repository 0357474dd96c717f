// Package accounts groups the identities: who calls, and in which accounts an agent may act.
//   - auth authenticates callers, agenttoken the agents of other programs.
//   - linking manages the accounts that users have linked, with google and github for what differs by provider.
//   - tokenkey provides the cipher for users' secrets.
package accounts
