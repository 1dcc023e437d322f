package asset

// WithoutSecrets is the asset as its events store it: inputs may carry the caller's credentials, and the signature
// opens the master.
func (a Asset) WithoutSecrets() Asset {
	a.Options.Inputs = nil
	if a.Master != nil {
		m := *a.Master
		m.Signature = ""
		a.Master = &m
	}
	return a
}

// WithSecrets is an asset of an event with the signature that its master has now, if it still is the same one.
func (a Asset) WithSecrets(now Asset) Asset {
	if a.Master != nil && now.Master != nil && a.Master.ID == now.Master.ID {
		m := *a.Master
		m.Signature = now.Master.Signature
		a.Master = &m
	}
	return a
}
