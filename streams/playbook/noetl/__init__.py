"""NoETL's spelling: public playbooks, compiled into the same model as the specs' spelling."""
