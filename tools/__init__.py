"""What makes the documentation: pictures, notebooks, blocks of code in the reference."""
